"""Ends of schedulers that are spoken to in Python: what `hightide bench --executor` starts beside itself."""
