package topology

import (
	"fmt"
	"slices"
)

// EncodeService is the records of one service: one, or a power of two of parts, none above PartLimit. An instance stands
// in the part that the hash of its id says, so a changed instance rewrites its part alone.
//
// parts is the number of records that the service has now (0 or 1: whole). That number doubles only when a part would
// be above PartLimit, and halves only when no joined part would be above half of it. In between it stays as it is, so a
// service whose size moves around a limit does not flap.
func EncodeService(s Service, parts int) ([]Record, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	texts := make([]InstanceText, len(s.Instances))
	for i, in := range s.Instances {
		text, err := EncodeInstance(in)
		if err != nil {
			return nil, fmt.Errorf("topology: service %s: %w", s.Name, err)
		}
		texts[i] = text
	}
	return JoinTexts(s.Name, texts, parts)
}

// InstanceText is one instance as it stands inside its service's record.
type InstanceText struct {
	ID   string
	JSON []byte
}

// EncodeInstance is for those that keep a service's texts, so that a join encodes one instance and not all of them.
func EncodeInstance(in Instance) (InstanceText, error) {
	if err := in.validate(); err != nil {
		return InstanceText{}, fmt.Errorf("topology: instance %q: %w", clip(in.ID), err)
	}
	text, err := encodeJSON(in)
	if err != nil {
		return InstanceText{}, fmt.Errorf("topology: instance %s: %w", in.ID, err)
	}
	return InstanceText{ID: in.ID, JSON: text}, nil
}

// JoinTexts is EncodeService for texts of distinct ids that stand in the order of their instances.
func JoinTexts(service string, texts []InstanceText, parts int) ([]Record, error) {
	name, err := encodeJSON(service)
	if err != nil {
		return nil, fmt.Errorf("topology: encode service %s: %w", service, err)
	}
	head := fmt.Appendf(nil, `{"name":%s,"instances":[`, name)
	hashes := make([]uint32, len(texts))
	for i, t := range texts {
		hashes[i] = hashID(t.ID)
	}
	var sizes []int
	n := choose(parts, func(n int) int {
		sizes = partSizes(texts, hashes, n)
		return slices.Max(sizes) + len(head) + len("]}")
	})
	if n > MaxParts {
		return nil, fmt.Errorf("topology: service %s: an instance's record is above %d bytes, or its parts more than %d", service, PartLimit, MaxParts)
	}
	sizes = partSizes(texts, hashes, n)
	records := make([]Record, n)
	for k := range records {
		records[k] = Record{Key: PartKey(service, k), Value: append(make([]byte, 0, sizes[k]+len(head)+2), head...)}
	}
	for i, t := range texts {
		v := &records[int(hashes[i])&(n-1)].Value
		if len(*v) > len(head) {
			*v = append(*v, ',')
		}
		*v = append(*v, t.JSON...)
	}
	for k := range records {
		records[k].Value = append(records[k].Value, "]}"...)
	}
	if n == 1 {
		records[0].Key = ServiceKey(service)
	}
	return records, nil
}

// choose is the number of parts; above MaxParts when there is none that fits. size(n) is that of the largest of n.
func choose(parts int, size func(n int) int) int {
	now := 1
	for now*2 <= parts && now < MaxParts {
		now *= 2
	}
	n := now
	for n <= MaxParts && size(n) > PartLimit {
		n *= 2
	}
	if n > now {
		return n
	}
	for n > 1 && size(n/2) <= PartLimit/2 {
		n /= 2
	}
	return n
}

// partSizes is the bytes that the instances of each of n parts take, commas included.
func partSizes(texts []InstanceText, hashes []uint32, n int) []int {
	sizes := make([]int, n)
	for i, t := range texts {
		sizes[int(hashes[i])&(n-1)] += len(t.JSON) + 1
	}
	return sizes
}

// partOf says in which of n parts, a power of two, an instance stands. When n doubles, an instance of part k stays there
// or goes to part k+n.
func partOf(id string, n int) int { return int(hashID(id)) & (n - 1) }

// hashID is FNV-1a with its bits mixed once more, since its low bits alone spread short ids badly.
func hashID(id string) uint32 {
	h := uint32(2166136261)
	for i := range len(id) {
		h = (h ^ uint32(id[i])) * 16777619
	}
	h ^= h >> 16
	h *= 0x85ebca6b
	return h ^ h>>13
}
