"""The harnesses, a package each: process (is it one), finder (its routes), store, chat."""
