"""JSON Schemas of the files that Wiretrap reads and writes, made of the models that read and write them."""
