package script

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// Ranges finds a value by an IPv4 address that lies between two others. The zero value is empty. Looking up is safe for
// concurrent use once nothing is written.
//
// A range may be added inside another, never across the end of one, nor around one. As in nginx that holds for each 65536
// addresses with the same first half by themselves.
type Ranges[T any] struct {
	parts map[uint16][]span[T] // by the first half of the address; spans don't meet and are in order
}

// span is a part of a range, by the second half of its addresses.
type span[T any] struct {
	from, to uint16
	v        T
}

// Add gives the addresses of a range a value. The range may have been added before: its value is replaced.
func (s *Ranges[T]) Add(from, to netip.Addr, v T) error {
	return s.each(from, to, func(part uint16, add span[T]) error {
		add.v = v
		spans, ok := insert(s.parts[part], add)
		if !ok {
			return fmt.Errorf("%s-%s overlaps another range", from, to)
		}
		if s.parts == nil {
			s.parts = map[uint16][]span[T]{}
		}
		s.parts[part] = spans
		return nil
	})
}

// Delete takes a range out that was added with these ends, and not what lies inside it.
func (s *Ranges[T]) Delete(from, to netip.Addr) error {
	return s.each(from, to, func(part uint16, gone span[T]) error {
		s.parts[part] = slices.DeleteFunc(s.parts[part], func(x span[T]) bool { return x.from == gone.from && x.to == gone.to })
		return nil
	})
}

// Find looks an address up.
func (s *Ranges[T]) Find(a netip.Addr) (v T, ok bool) {
	if a = a.Unmap(); !a.Is4() {
		return v, false
	}
	n := number(a)
	spans, at := s.parts[uint16(n>>16)], uint16(n)
	i, _ := slices.BinarySearchFunc(spans, at, func(x span[T], at uint16) int { return int(x.to) - int(at) })
	if i < len(spans) && spans[i].from <= at {
		return spans[i].v, true
	}
	return v, false
}

// each calls f for the parts of a range.
func (s *Ranges[T]) each(from, to netip.Addr, f func(part uint16, of span[T]) error) error {
	if !from.Is4() || !to.Is4() || to.Less(from) {
		return fmt.Errorf("%s-%s is no range of IPv4 addresses", from, to)
	}
	first, last := number(from), number(to)
	for part := first >> 16; part <= last>>16; part++ {
		of := span[T]{from: 0, to: 0xffff}
		if part == first>>16 {
			of.from = uint16(first)
		}
		if part == last>>16 {
			of.to = uint16(last)
		}
		if err := f(uint16(part), of); err != nil {
			return err
		}
	}
	return nil
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// insert puts a span among others: where none is, in the place of the same, or inside one, which is cut around it.
func insert[T any](spans []span[T], add span[T]) ([]span[T], bool) {
	i, _ := slices.BinarySearchFunc(spans, add.from, func(x span[T], at uint16) int { return int(x.to) - int(at) })
	if i == len(spans) || spans[i].from > add.to {
		return slices.Insert(spans, i, add), true
	}
	around := spans[i]
	if add.from < around.from || add.to > around.to {
		return nil, false
	}
	parts := make([]span[T], 0, 3)
	if around.from < add.from {
		parts = append(parts, span[T]{around.from, add.from - 1, around.v})
	}
	parts = append(parts, add)
	if add.to < around.to {
		parts = append(parts, span[T]{add.to + 1, around.to, around.v})
	}
	return slices.Replace(spans, i, i+1, parts...), true
}
