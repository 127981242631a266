package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sluice.dev/sluice/simulations/sandbox"
)

func writeTable(out io.Writer, s *sandbox.Sandbox, st sandbox.Status) error {
	_, _ = fmt.Fprintf(out, "sandbox     %s\nkubeconfig  %s\nmode        %s\n", s.Dir, s.Kubeconfig(), st.Settings.Mode)
	switch {
	case st.NodesError != nil:
		_, _ = fmt.Fprintf(out, "nodes       %v\n", st.NodesError)
	case st.Nodes > 0:
		_, _ = fmt.Fprintf(out, "nodes       %d, %d not ready\n", st.Nodes, st.NotReady)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nCOMPONENT\tPID\tPORT\tHEALTH\tLOG")
	for _, c := range st.Components {
		health := "ok"
		if c.Health != nil {
			health = strings.ReplaceAll(c.Health.Error(), "\n", " ")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Name, dash(c.PID), dash(c.Port), health, c.Log)
	}
	return w.Flush()
}

// dash is a number, or - for one that is not known.
func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func writeJSON(out io.Writer, s *sandbox.Sandbox, st sandbox.Status) error {
	type line struct {
		sandbox.ComponentStatus
		Health string `json:"health"`
	}
	var lines []line
	for _, c := range st.Components {
		l := line{ComponentStatus: c, Health: "ok"}
		if c.Health != nil {
			l.Health = c.Health.Error()
		}
		lines = append(lines, l)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"dir": s.Dir, "kubeconfig": s.Kubeconfig(), "mode": st.Settings.Mode, "healthy": st.Healthy(),
		"nodes": st.Nodes, "nodesNotReady": st.NotReady, "components": lines,
	})
}
