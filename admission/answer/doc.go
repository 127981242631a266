// Package answer answers questions about a state: why does a gang wait, when will it
// run, what would change that, who is before it, what would another weight do.
//
//	State ──Image──▶ Snapshot ──▶ JSON, a file, another machine
//	                    │
//	                    ▼
//	                  World ── Why, Plan, WhatIf, Order, Map, ... ──▶ values
//	                    │                                              │
//	         trials: admission.Cycle on copies                text (80 columns) or JSON
//
// It decides nothing: each answer is what package admission says of a copy of the
// state, changed as the question asks. There is no second implementation of a rule.
// A change that "would admit it" has been tried so before it is told. It leaves to
// admission/api who may ask, and to cmd/sluice how a table looks.
//
// What holds:
//
//   - a question never changes what it is asked of: two answers of one World to one
//     question are equal;
//   - a Snapshot read back decides as the state did that it was taken of;
//   - time is that of the World; nothing here reads a clock;
//   - JSON fields are added within a version, never renamed or given another meaning.
package answer
