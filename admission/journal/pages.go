package journal

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"os"
)

// checkPages looks whether a file is a bbolt database whose every reachable page
// is where it should be and holds what it should. bbolt maps the file into memory
// and follows what it finds, so a damaged page ends the process. It returns a
// damage if the file is not sound; other errors are those of reading it.
//
// An empty file is sound: bbolt makes a database of it. So is one in which the
// last write was cut off: bbolt goes on from the write before.
func checkPages(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return nil
	}
	m, err := findMeta(f, info.Size())
	if err != nil {
		return err
	}
	c := &pageCheck{file: f, meta: m, seen: make([]bool, m.pages)}
	c.seen[0], c.seen[1] = true, true
	if m.freelist != noFreelist {
		if err := c.freelist(); err != nil {
			return err
		}
	}
	return c.tree(m.root, nil, nil, 0)
}

// What bbolt writes, in the byte order of the machine.
const (
	magic      = 0xED0CDAED
	version    = 2
	headerSize = 16 // of a page: id 8, kind 2, count 2, overflow 4
	metaSize   = 64 // behind the header
	entrySize  = 16 // of a branch: pos 4, ksize 4, page 8; of a leaf: flags, pos, ksize, vsize, 4 each
	bucketSize = 16 // root 8, sequence 8

	kindBranch   = 0x01
	kindLeaf     = 0x02
	kindFreelist = 0x10
	flagBucket   = 0x01

	noFreelist = math.MaxUint64
	// Deeper than any journal, and far from the end of the stack.
	maxDepth = 64
)

var order = binary.NativeEndian

// meta is the page that says where everything is.
type meta struct {
	pageSize, root, freelist, pages, tx uint64
}

// readMeta returns what data says, if it is a meta page as it was written.
func readMeta(data []byte) (meta, bool) {
	b := data[headerSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	ok := order.Uint32(b) == magic && order.Uint32(b[4:]) == version && order.Uint64(b[56:]) == sum.Sum64()
	return meta{
		pageSize: uint64(order.Uint32(b[8:])), root: order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]), pages: order.Uint64(b[40:]), tx: order.Uint64(b[48:]),
	}, ok
}

// findMeta returns the later of the two meta pages, or the one that is whole.
func findMeta(f *os.File, size int64) (meta, error) {
	at := func(pos int64) (meta, bool, error) {
		data := make([]byte, headerSize+metaSize)
		if pos+int64(len(data)) > size {
			return meta{}, false, nil
		}
		if _, err := f.ReadAt(data, pos); err != nil {
			return meta{}, false, err
		}
		m, ok := readMeta(data)
		return m, ok, nil
	}
	best, ok, err := at(0)
	if err != nil {
		return best, err
	}
	// The second is a page further. If only it is whole, it says how long a page is.
	first, last := int64(1024), int64(16<<20)
	if ok {
		first, last = int64(best.pageSize), int64(best.pageSize)
	}
	for pos := first; pos <= last && pos > 0; pos *= 2 {
		m, whole, err := at(pos)
		if err != nil {
			return best, err
		}
		if !whole {
			continue
		}
		if m.pageSize != uint64(pos) {
			return best, damagef("its second page says that pages have %d bytes, and begins at %d", m.pageSize, pos)
		}
		if !ok || m.tx > best.tx {
			best, ok = m, true
		}
		break
	}
	switch {
	case !ok:
		return best, damagef("it has no whole meta page")
	case best.pageSize < 1024 || best.pageSize > 16<<20 || best.pageSize&(best.pageSize-1) != 0:
		return best, damagef("its pages are said to have %d bytes", best.pageSize)
	case best.pages < 4 || best.pages > uint64(size)/best.pageSize:
		return best, damagef("it has %d bytes, too few for %d pages of %d", size, best.pages, best.pageSize)
	case best.tx >= 1<<62:
		return best, damagef("it is said to be written %d times", best.tx)
	}
	return best, nil
}

// pageCheck follows the pages from the root.
type pageCheck struct {
	file *os.File
	meta meta
	seen []bool // pages that are in use or free; none is both, none is twice
}

// page reads page id with what it runs over into.
func (c *pageCheck) page(id uint64) ([]byte, error) {
	if id < 2 || id >= c.meta.pages {
		return nil, damagef("page %d is not among its %d pages", id, c.meta.pages)
	}
	head := make([]byte, headerSize)
	if _, err := c.file.ReadAt(head, int64(id*c.meta.pageSize)); err != nil {
		return nil, err
	}
	if got := order.Uint64(head); got != id {
		return nil, damagef("page %d says that it is page %d", id, got)
	}
	over := uint64(order.Uint32(head[12:]))
	if over >= c.meta.pages-id {
		return nil, damagef("page %d runs %d pages further, beyond the last", id, over)
	}
	for p := id; p <= id+over; p++ {
		if err := c.visit(p); err != nil {
			return nil, err
		}
	}
	data := make([]byte, (over+1)*c.meta.pageSize)
	if _, err := c.file.ReadAt(data, int64(id*c.meta.pageSize)); err != nil && err != io.EOF {
		return nil, err
	}
	return data, nil
}

func (c *pageCheck) visit(p uint64) error {
	if c.seen[p] {
		return damagef("page %d is used twice", p)
	}
	c.seen[p] = true
	return nil
}

// freelist checks the page that names the free pages.
func (c *pageCheck) freelist() error {
	data, err := c.page(c.meta.freelist)
	if err != nil {
		return err
	}
	if kind := order.Uint16(data[8:]); kind != kindFreelist {
		return damagef("page %d should list free pages but is of kind %d", c.meta.freelist, kind)
	}
	body, count := data[headerSize:], uint64(order.Uint16(data[10:]))
	if count == math.MaxUint16 { // too many for the header
		count, body = order.Uint64(body), body[8:]
	}
	if count > uint64(len(body))/8 {
		return damagef("page %d lists %d free pages, more than it has room for", c.meta.freelist, count)
	}
	for i := range count {
		p := order.Uint64(body[8*i:])
		if p < 2 || p >= c.meta.pages {
			return damagef("free page %d is not among its %d pages", p, c.meta.pages)
		}
		if err := c.visit(p); err != nil {
			return err
		}
	}
	return nil
}

// tree checks page id and everything below it. Its keys are from lo up to but not
// including hi; nil is no bound.
func (c *pageCheck) tree(id uint64, lo, hi []byte, depth int) error {
	data, err := c.page(id)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return damagef("page %d is %d pages below the root", id, depth)
	}
	switch kind := order.Uint16(data[8:]); kind {
	case kindLeaf:
		return c.leaf(data, lo, hi, depth)
	case kindBranch:
		return c.branch(data, lo, hi, depth)
	default:
		return damagef("page %d should hold keys but is of kind %d", id, kind)
	}
}

func (c *pageCheck) branch(data, lo, hi []byte, depth int) error {
	n := int(order.Uint16(data[10:]))
	if n == 0 {
		return damagef("page %d leads nowhere", order.Uint64(data))
	}
	keys, err := entries(data, n, 0, 4)
	if err != nil {
		return err
	}
	for i, e := range keys {
		end := hi
		if i+1 < n {
			end = keys[i+1].key
		}
		if err := ordered(e.key, lo, end); err != nil {
			return err
		}
		if err := c.tree(order.Uint64(data[e.at+8:]), e.key, end, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *pageCheck) leaf(data, lo, hi []byte, depth int) error {
	n := int(order.Uint16(data[10:]))
	keys, err := entries(data, n, 4, 8)
	if err != nil {
		return err
	}
	for i, e := range keys {
		end := hi
		if i+1 < n {
			end = keys[i+1].key
		}
		if err := ordered(e.key, lo, end); err != nil {
			return err
		}
		start := e.end
		stop := uint64(start) + uint64(order.Uint32(data[e.at+12:]))
		if stop > uint64(len(data)) {
			return damagef("a value of %d bytes does not fit its page", stop-uint64(start))
		}
		if order.Uint32(data[e.at:])&flagBucket != 0 {
			if err := c.bucket(data[start:stop], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks the bucket that a value describes: pages of its own, or, if it is
// small, a page within the value.
func (c *pageCheck) bucket(value []byte, depth int) error {
	if len(value) < bucketSize {
		return damagef("a bucket is described by %d bytes", len(value))
	}
	if root := order.Uint64(value); root != 0 {
		return c.tree(root, nil, nil, depth)
	}
	page := value[bucketSize:]
	if len(page) < headerSize || order.Uint16(page[8:]) != kindLeaf || depth > maxDepth {
		return damagef("a small bucket holds no keys")
	}
	return c.leaf(page, nil, nil, depth)
}

// entry is a key of a page: where its entry and the key's end are.
type entry struct {
	at, end int
	key     []byte
}

// entries reads the n entries of a page, whose key position and key length are at
// the given offsets.
func entries(data []byte, n, pos, size int) ([]entry, error) {
	if headerSize+n*entrySize > len(data) {
		return nil, damagef("page %d has no room for %d keys", order.Uint64(data), n)
	}
	out := make([]entry, n)
	for i := range out {
		at := headerSize + i*entrySize
		start := uint64(at) + uint64(order.Uint32(data[at+pos:]))
		length := uint64(order.Uint32(data[at+size:]))
		if length == 0 || start+length > uint64(len(data)) {
			return nil, damagef("a key of %d bytes does not fit its page", length)
		}
		out[i] = entry{at: at, end: int(start + length), key: data[start : start+length]}
	}
	return out, nil
}

func ordered(k, lo, hi []byte) error {
	if lo != nil && bytes.Compare(k, lo) < 0 || hi != nil && bytes.Compare(k, hi) >= 0 {
		return damagef("key %x is out of order", k)
	}
	return nil
}
