"""The HTTP server: cheroot's, with connections that hold no thread while they wait."""
