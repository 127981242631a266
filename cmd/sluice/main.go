// Command sluice is what people ask sluice with. Under the name kubectl-sluice it
// is a plugin of kubectl.
package main

import (
	"os"
)

func main() { os.Exit(executeAs(os.Args[0], os.Args[1:], os.Stdout, os.Stderr)) }
