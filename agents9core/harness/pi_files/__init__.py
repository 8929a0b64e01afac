"""The session files that pi and omp write alike: where they lie, and what their heads say."""
