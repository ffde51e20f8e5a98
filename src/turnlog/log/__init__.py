"""The vocabulary: immutable values and the pure rules over them. Nothing here knows a store or a model."""
