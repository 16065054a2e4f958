//! What the documentation and the board name exists, and what exists is documented.
