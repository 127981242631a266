// Package config holds the controller's configuration file: its types, its
// defaults, and a strict reader.
//
// The file is typed and versioned. What the reader does not know it refuses:
// an unknown key, a key given twice, a second document, a number where a
// duration belongs, a value out of its range. Every refusal names the file and
// the line, and all refusals of a file are reported together.
//
// The package decides nothing about what the values do; it turns text into a
// Configuration that is complete (every default filled in) and valid, or into
// an error that an operator can mend without reading this code.
package config
