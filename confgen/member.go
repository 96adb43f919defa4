package confgen

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// member is one routable instance as it is published.
type member struct {
	inst topology.Instance
	text topology.InstanceText
}

func compareMembers(a, b member) int {
	return cmp.Or(cmp.Compare(a.inst.Order, b.inst.Order), cmp.Compare(a.inst.ID, b.inst.ID))
}

// newMember is the published form of a registry row.
func newMember(in registry.Instance) (member, error) {
	inst, err := published(in)
	if err != nil {
		return member{}, err
	}
	text, err := topology.EncodeInstance(inst)
	if err != nil {
		return member{}, err
	}
	return member{inst: inst, text: text}, nil
}

// published leaves out what is nginx's default, so that records stay small.
func published(in registry.Instance) (topology.Instance, error) {
	a := in.Attrs
	ip, err := netip.ParseAddr(a.IP)
	if err != nil || a.Port < 1 || a.Port > 65535 {
		return topology.Instance{}, fmt.Errorf("address %q port %d", a.IP, a.Port)
	}
	out := topology.Instance{
		ID:          in.ID,
		Order:       in.DenseID,
		Incarnation: in.Incarnation,
		Addr:        netip.AddrPortFrom(ip, uint16(a.Port)).String(),
		MaxConns:    a.MaxConns,
		SlowStart:   topology.Duration(a.SlowStart),
		Zone:        a.Zone,
		Version:     a.Version,
		Tags:        slices.Clone(a.Tags),
		Drain:       in.Status == registry.StatusDraining,
		Unproven:    in.Liveness == registry.Unproven,
	}
	if a.Scheme != "http" {
		out.Scheme = a.Scheme
	}
	if a.Weight != 1 {
		out.Weight = a.Weight
	}
	if a.MaxFails != topology.DefaultMaxFails || a.FailTimeout != topology.DefaultFailTimeout {
		fails := a.MaxFails
		out.MaxFails, out.FailTimeout = &fails, topology.Duration(a.FailTimeout)
	}
	return out, nil
}

// describe says in a few words what changed between two forms of one instance; "changed" when there are no better ones.
func describe(was, is topology.Instance) string {
	switch {
	case was.Drain != is.Drain:
		return either(is.Drain, "drains", "is up again")
	case was.Incarnation != is.Incarnation:
		return "restarted"
	case was.Addr != is.Addr || was.Scheme != is.Scheme:
		return "moved to " + is.Addr
	case was.Weight != is.Weight:
		return fmt.Sprintf("weight %d → %d", max(was.Weight, 1), max(is.Weight, 1))
	case was.Zone != is.Zone:
		return fmt.Sprintf("zone %q → %q", was.Zone, is.Zone)
	case was.Version != is.Version:
		return fmt.Sprintf("version %q → %q", was.Version, is.Version)
	case was.Unproven != is.Unproven:
		return either(is.Unproven, "unproven", "proven again")
	case was.Order != is.Order:
		return "joined anew"
	}
	return "changed"
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// farewell says why an instance is routed to no more.
func farewell(l registry.Liveness) string {
	switch l {
	case registry.Left:
		return "left"
	case registry.Stale:
		return "stale"
	case registry.Superseded:
		return "superseded"
	}
	return "gone"
}
