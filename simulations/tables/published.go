package tables

import (
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/simulations/traces"
)

// Run names a run of the FGD study.
type Run struct {
	Workload, Policy string
	Seed             int64
}

// upstreamNames are the Placements as the published tables call them.
var upstreamNames = []string{"01-Random", "02-DotProd", "03-GpuClustering", "04-GpuPacking", "05-BestFit", "06-FGD"}

// Published reads what the FGD study published of every run.
func Published(dir string) (map[Run]Packing, error) {
	out := map[Run]Packing{}
	for name, put := range map[string]func(*Packing, []float64){
		"analysis_allo_discrete.csv":       func(p *Packing, at []float64) { p.Allocated = at },
		"analysis_frag_discrete.csv":       func(p *Packing, at []float64) { p.Fragmented = at },
		"analysis_frag_ratio_discrete.csv": func(p *Packing, at []float64) { p.OfIdle = at },
	} {
		rows, err := read(filepath.Join(dir, "fgd-expected", name), (*traces.File).Series)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			i := slices.Index(upstreamNames, row.Policy)
			if i < 0 {
				continue
			}
			r := Run{strings.TrimPrefix(row.Workload, "openb_pod_list_"), Placements[i], row.Seed}
			p := out[r]
			put(&p, row.At)
			out[r] = p
		}
	}
	return out, nil
}
