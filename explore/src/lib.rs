//! Making rare failures happen, and happen again.
