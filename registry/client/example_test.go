package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/upstrand/upstrand/registry/client"
)

// Who takes traffic, and how long ago did each beat?
func ExampleClient_AllInstances() {
	c, err := client.New(client.Config{Base: "http://127.0.0.1:8090"})
	if err != nil {
		log.Fatal(err)
	}
	routable := client.InstanceQuery{Liveness: []string{"live", "unproven"}}
	for in, err := range c.AllInstances(context.Background(), routable) {
		if err != nil {
			log.Fatal(err)
		}
		if in.Age != nil {
			fmt.Printf("%s/%s at %s: %.1f s of %.0f s\n", in.Service, in.ID, in.Address, *in.Age, in.Limit)
		}
	}
}
