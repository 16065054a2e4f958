//! Talks to a daemon: finds it, asks it, and says in words what it answers.
