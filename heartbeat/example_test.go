package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/upstrand/upstrand/heartbeat"
)

// broker is an embedded broker with the topic of beats; a service names its own.
func broker() (addrs []string, stop func()) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(6, heartbeat.DefaultTopic))
	if err != nil {
		panic(err)
	}
	return cluster.ListenAddrs(), cluster.Close
}

// A service beats for as long as it runs, and says goodbye.
func ExampleSender() {
	brokers, stop := broker()
	defer stop()

	sent := make(chan heartbeat.Beat, 10)
	sender, err := heartbeat.NewSender(heartbeat.Config{
		Brokers: brokers,
		Beat: heartbeat.Beat{
			Service: "orders", ID: "orders-7",
			IP: "10.0.0.7", Port: 8080, URL: "/orders/",
			Zone: "eu-1a", Weight: 2,
		},
		Load:   func() (*heartbeat.Load, *heartbeat.Resources) { return &heartbeat.Load{InFlight: 3}, nil },
		OnSent: func(b heartbeat.Beat) { sent <- b },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- sender.Run(ctx) }()

	b := <-sent
	fmt.Println(b.Seq, b.Status, string(b.Key()), b.Load.InFlight)

	// What changes in between goes out at once.
	if err := sender.Update(func(b *heartbeat.Beat) { b.Status = heartbeat.StatusDraining }); err != nil {
		fmt.Println(err)
	}
	b = <-sent
	fmt.Println(b.Seq, b.Status)

	cancel()
	fmt.Println(<-done)
	b = <-sent
	fmt.Println(b.Seq, b.Status)
	// Output:
	// 1 up orders/orders-7 3
	// 2 draining
	// <nil>
	// 3 leaving
}

// Decode fills in what a beat does not say, and brings the rest into one form.
func ExampleDecode() {
	b, err := heartbeat.Decode([]byte(`{"service":"orders","id":"7","ip":"[2001:DB8::7]","port":8080,"interval":5}`))
	fmt.Println(b.Scheme, b.IP, b.Port, b.Status, b.Weight, b.Interval, b.StaleLimit(), err)
	// Output: http 2001:db8::7 8080 up 1 5s 15s <nil>
}

// All problems are told at once, with a code for counting.
func ExampleInvalidError() {
	_, err := heartbeat.Decode([]byte(`{"service":"orders","id":"7","ip":"10.0.0.7","port":0,"wieght":3}`))
	var invalid *heartbeat.InvalidError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Reason)
		for _, p := range invalid.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// unknown_field
	// wieght: is no field (did you mean weight?), given 3 (allowed: weight)
	// port: is out of range, given 0 (allowed: 1 to 65535)
}

// The JSON that any language can send.
func ExampleBeat_Encode() {
	value, err := heartbeat.Beat{Service: "orders", ID: "7", IP: "10.0.0.7", Port: 8080,
		Interval: heartbeat.Duration(5 * time.Second)}.Encode()
	fmt.Println(string(value), err)
	// Output: {"service":"orders","id":"7","scheme":"http","ip":"10.0.0.7","port":8080,"status":"up","weight":1,"interval":"5s"} <nil>
}
