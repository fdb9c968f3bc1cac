"""In-process query engine: reads over cached columns and adjacency (CSR), writes over staged rows. See DESIGN.md."""
