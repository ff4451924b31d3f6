//! Side-by-side figures. Never part of the product.

fn main() {}
