//! Many clients at once, kind and unkind: nobody is hurt by the others, and the arithmetic stays exact.

mod bounds;
mod drain;
mod rush;
mod slow;
