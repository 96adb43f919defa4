package sidecar_test

import (
	"context"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/heartbeat/sidecar"
)

// A sidecar joins for a service when its port takes connections, and says goodbye at the end.
func Example() {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(6, heartbeat.DefaultTopic))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()
	service, err := net.Listen("tcp", "127.0.0.1:0") // stands for a service of any language
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.Close()

	sent := make(chan heartbeat.Beat, 10)
	check, err := sidecar.ParseCheck("tcp://" + service.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := sidecar.New(sidecar.Config{
		Sender: heartbeat.Config{
			Brokers: broker.ListenAddrs(),
			Beat: heartbeat.Beat{Service: "orders", ID: "a7", URL: "/orders/",
				IP: "127.0.0.1", Port: service.Addr().(*net.TCPAddr).Port},
			OnSent: func(b heartbeat.Beat) { sent <- b },
		},
		Check: check, Rise: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()

	b := <-sent
	fmt.Println(b.Service, b.Status, s.Ready())
	cancel()
	fmt.Println(sidecar.ExitCode(<-done))
	b = <-sent
	fmt.Println(b.Service, b.Status)
	// Output:
	// orders up <nil>
	// 0
	// orders leaving
}
