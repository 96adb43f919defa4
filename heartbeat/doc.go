// Package heartbeat is what a service needs to take part: Beat, the message of topic_heartbeat with its strict
// Decode and canonical Encode, and Sender, which beats for a Go service until it ends and then says goodbye.
//
// It is imported by other people's services, so it depends on kafka-go and nothing else. It is not the reading side
// (package listener), it does not check whether a service is well (package sidecar does), and it keeps no state.
//
// A beat alone creates or revives an instance; there is no registration. In Go:
//
//	sender, err := heartbeat.NewSender(heartbeat.Config{
//		Brokers: []string{"kafka:9092"},
//		Beat:    heartbeat.Beat{Service: "orders", ID: "orders-7", IP: "10.0.0.7", Port: 8080, URL: "/orders/"},
//	})
//	...
//	err = sender.Run(ctx) // blocks until ctx ends; the goodbye is its last act
//
// Any other language sends JSON (beat.schema.json). Two fields more than the address are enough, here with kcat:
//
//	echo 'orders/orders-7|{"service":"orders","id":"orders-7","ip":"10.0.0.7","port":8080,"url":"/orders/"}' |
//	  kcat -P -b kafka:9092 -t topic_heartbeat -K '|'
//
// and without Kafka, through the registry's API:
//
//	curl -X POST http://registry:8090/v1/beats -H 'Content-Type: application/json' \
//	  -d '{"service":"orders","id":"orders-7","ip":"10.0.0.7","port":8080,"url":"/orders/"}'
//
// to be repeated every 10 s, and once with "status":"leaving" at the end. A beat that gives no incarnation and seq
// counts by its place in the log. A record without a key is accepted on purpose, but then nothing keeps the beats of an
// instance in one partition, and so in order; one with another key than service/id is refused. The API sets the key.
//
// A beat is taken at its word: whoever may write the topic can beat, or say goodbye, for any instance. Kafka's ACLs are what
// keeps others out. Only addresses at which no instance can be are refused, link-local ones with their metadata services
// among them; loopback and private ones are not.
//
// A new field of a beat is refused by listeners that do not know it (unknown_field): update listeners before senders.
package heartbeat
