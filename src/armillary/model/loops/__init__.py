"""Closed loops of links: what closes them, and which joints they determine."""
