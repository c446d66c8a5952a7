"""Generated reviews whose label depends on word order: the sentiment task's bundled sample."""
