"""What turnlog's own stores are tested with, for everybody who writes one.

``contract`` holds the properties of a store as pytest classes, ``dict_store`` the smallest store that has them all, and
``wrong_stores`` those that lack some on purpose. ``factories``, ``clocks`` and ``strategies`` make what tests need,
``faults`` has calls fail, and ``history`` checks what concurrent callers saw. Import from these modules; each says what
it needs.
"""
