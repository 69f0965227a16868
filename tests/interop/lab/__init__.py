"""The interop lab: a private network, siw hosts, programs on both sides, recordings."""
