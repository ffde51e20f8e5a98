"""Shipped for authors of stores: what they need to find out whether a store keeps its promises."""
