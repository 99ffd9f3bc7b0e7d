"""GBNF, the grammar notation of llama.cpp: a parser, and a printer for any grammar it can say."""
