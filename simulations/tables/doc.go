// Package tables runs the engine on published inputs and compares what comes out
// with what was published, cell by cell.
//
// It decides nothing of its own about who starts where: quota, order, backfill and
// placement are the core's. What it adds is what a study fixes beside them: the
// order in which things arrive, the preference of one node to another that a study
// compares (a gang.Preference), and how a table counts.
//
//	traces ──▶ study (fgd, easy, rl, philly) ──▶ core ──▶ Cells: expected, got, difference ──▶ Page
//
// What holds:
//   - a cell that differs is shown with its difference, never left out;
//   - the same inputs give the same page but for its times, whatever the machine;
//   - without the traces nothing is said about them: tests skip, the command fails.
package tables
