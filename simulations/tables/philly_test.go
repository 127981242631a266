package tables

import "testing"

// Two teams of one node each: the one that is busy borrows the other's node, and gives
// it back when it is asked for. What was taken back runs again, and ends later by what
// was lost.
func TestTeamsLendAndTakeBack(t *testing.T) {
	jobs := []fleetJob{
		{queue: "a", submit: 0, run: 100, gpus: 8},
		{queue: "a", submit: 1, run: 100, gpus: 8}, // borrows b's node at once
		{queue: "b", submit: 50, run: 10, gpus: 8}, // takes it back
	}
	shares := []share{{Cluster: "a", Nodes: 1}, {Cluster: "b", Nodes: 1}}
	own, one := runTeams(jobs, shares, private), runTeams(jobs, shares, shared)
	if own.Ended[0] != 100 || own.Ended[1] != 200 || own.Ended[2] != 60 {
		t.Errorf("alone they end at %v", own.Ended)
	}
	if one.Ended[0] != 100 || one.Ended[1] != 160 || one.Ended[2] != 60 || one.By["a"].Evictions != 1 {
		t.Errorf("together they end at %v, %d taken back; want 100, 160 (a run again from 60 on), 60 and 1", one.Ended, one.By["a"].Evictions)
	}
	if line := runTeams(jobs, shares, single); line.Ended[2] != 110 {
		t.Errorf("first come first served, b ends at %v, want 110", line.Ended[2])
	}
	if n, each := pods(12); n != 2 || each != 6 {
		t.Errorf("12 GPUs are %d pods of %d", n, each)
	}
}
