package journal

import (
	"encoding/json"
	"fmt"
	"hash/crc32"

	"sluice.dev/sluice/admission"
)

// format is the format of files and records that this program writes and the
// latest that it reads. It rises when a program that knows only an earlier one
// would misread a record; a new field of a decision is no reason.
const format = 1

// record is how a decision is kept. The sum is over the bytes of Decision: the
// pages of a file carry none of their own.
type record struct {
	Format   int             `json:"format"`
	Sum      uint32          `json:"sum"`
	Decision json.RawMessage `json:"decision"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode writes d as decision seq.
func encode(d *admission.Decision, seq uint64) ([]byte, error) {
	numbered := *d
	numbered.Seq = seq
	body, err := json.Marshal(&numbered)
	if err != nil {
		return nil, fmt.Errorf("encode decision %d: %w", seq, err)
	}
	r := record{Format: format, Sum: crc32.Checksum(body, castagnoli), Decision: body}
	out, err := json.Marshal(&r)
	if err != nil {
		return nil, fmt.Errorf("encode record of decision %d: %w", seq, err)
	}
	return out, nil
}

// decode reads what encode wrote. Every error is a damage.
func decode(data []byte, seq uint64) (admission.Decision, error) {
	var d admission.Decision
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return d, damagef("the record of decision %d: %v", seq, err)
	}
	if r.Format != format {
		return d, damagef("the record of decision %d has format %d, its file has format %d", seq, r.Format, format)
	}
	if sum := crc32.Checksum(r.Decision, castagnoli); sum != r.Sum {
		return d, damagef("the record of decision %d adds up to %08x, it was written with %08x", seq, sum, r.Sum)
	}
	if err := json.Unmarshal(r.Decision, &d); err != nil {
		return d, damagef("decision %d: %v", seq, err)
	}
	if d.Seq != seq {
		return d, damagef("decision %d is kept as decision %d", d.Seq, seq)
	}
	return d, nil
}

// damage says that a file is not what was written.
type damage struct{ what string }

func (d *damage) Error() string { return d.what }

func damagef(format string, args ...any) error { return &damage{fmt.Sprintf(format, args...)} }
