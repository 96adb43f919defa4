package proxy

import (
	"testing"

	"github.com/upstrand/upstrand/confgen/topology"
)

func TestLookup(t *testing.T) {
	table := &table{hosts: map[string]*paths{}}
	for _, r := range []struct{ host, path string }{
		{"", "/"}, {"", "/orders"}, {"", "/orders/deep/er"}, {"", "/users"},
		{"shop.example", "/orders"}, {"Shop.Example", "/own"}, {"::1", "/six"},
	} {
		table.addRoute(topology.Route{Host: r.host, Path: r.path}, &target{name: r.host + r.path})
	}
	for _, tc := range []struct{ host, path, want string }{
		{"x", "/", "/"},
		{"x", "/orders", "/orders"},
		{"x", "/orders/", "/orders"},
		{"x", "/orders/1/2/3/4/5/6", "/orders"},
		{"x", "/ordersx", "/"},
		{"x", "/orders/deep", "/orders"},
		{"x", "/orders/deep/er", "/orders/deep/er"},
		{"x", "/orders/deep/er/", "/orders/deep/er"},
		{"x", "/orders/deep/err", "/orders"},
		{"shop.example", "/orders/1", "shop.example/orders"},
		{"SHOP.example.:8080", "/orders/1", "shop.example/orders"},
		{"shop.example", "/own", "Shop.Example/own"},
		{"x", "/own", "/"},
		{"shop.example", "/users", "/users"},
		{"[::1]:80", "/six/x", "::1/six"},
		{"", "/users", "/users"},
	} {
		to := table.lookup([]byte(tc.host), tc.path)
		if to == nil || to.name != tc.want {
			t.Errorf("%s%s: %+v, want %s", tc.host, tc.path, to, tc.want)
		}
	}
	empty := table.hosts[""]
	empty.root = nil
	if to := table.lookup([]byte("x"), "/none"); to != nil {
		t.Errorf("%+v", to)
	}
}
