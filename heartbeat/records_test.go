package heartbeat

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// with is a good beat's JSON with fields replaced or added ("name": raw JSON) or, with an empty value, removed.
func with(changes ...string) string {
	fields := []string{"service", `"orders"`, "id", `"a7"`, "ip", `"10.0.0.7"`, "port", "8080"}
	for i := 0; i < len(changes); i += 2 {
		at := -1
		for j := 0; j < len(fields); j += 2 {
			if fields[j] == changes[i] {
				at = j
			}
		}
		if at >= 0 {
			fields = slices.Delete(fields, at, at+2)
		}
		if changes[i+1] != "" {
			fields = append(fields, changes[i], changes[i+1])
		}
	}
	var s strings.Builder
	for i := 0; i < len(fields); i += 2 {
		fmt.Fprintf(&s, `,%q:%s`, fields[i], fields[i+1])
	}
	return "{" + strings.TrimPrefix(s.String(), ",") + "}"
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// entries is n members of an object or, with an empty key, n elements of an array.
func entries(n int, key, value string) string {
	var list []string
	for i := range n {
		s := strings.ReplaceAll(value, "#", fmt.Sprint(i))
		if key != "" {
			s = fmt.Sprintf("%q:%s", fmt.Sprint(key, i), s)
		}
		list = append(list, s)
	}
	return strings.Join(list, ",")
}

// badRecords are records that Decode refuses, with the reasons of all their problems in order.
// Those marked free are beyond what the JSON Schema can say.
var badRecords = []struct {
	name    string
	record  string
	reasons []Reason
	free    bool
}{
	{"empty", "", []Reason{Empty}, true},
	{"too large", with("meta", `{"a":"`+repeat("x", MaxRecord)+`"}`), []Reason{TooLarge}, true},
	{"not UTF-8", with("zone", "\"\xff\""), []Reason{NotUTF8}, true},
	{"half a surrogate", with("meta", `{"a":"\ud800"}`), []Reason{NotUTF8}, true},
	{"half a surrogate and text", with("meta", `{"a":"\ud800\u0041"}`), []Reason{NotUTF8}, true},
	{"text", "hello", []Reason{NotJSON}, true},
	{"cut short", with()[:30], []Reason{NotJSON}, true},
	{"cut in an escape", `{"service":"\u00`, []Reason{NotJSON}, true},
	{"two objects", with() + with(), []Reason{NotJSON}, true},
	{"NUL after the end", with() + "\x00", []Reason{NotJSON}, true},
	{"trailing comma", strings.TrimSuffix(with(), "}") + ",}", []Reason{NotJSON}, true},
	{"single quotes", "{'service':'orders'}", []Reason{NotJSON}, true},
	{"control character in a string", with("zone", "\"a\nb\""), []Reason{NotJSON}, true},
	{"leading zero", with("port", "08080"), []Reason{NotJSON}, true},
	{"plus sign", with("port", "+1"), []Reason{NotJSON}, true},
	{"bare fraction", with("load", `{"rps":.5}`), []Reason{NotJSON}, true},
	{"NaN", with("load", `{"rps":NaN}`), []Reason{NotJSON}, true},
	{"comment", "/* */" + with(), []Reason{NotJSON}, true},
	{"byte order mark", "\ufeff" + with(), []Reason{NotJSON}, true},
	{"nested without end", with("zone", repeat("[", 1000)+repeat("]", 1000)), []Reason{NotJSON}, true},
	{"array", "[" + with() + "]", []Reason{NotObject}, false},
	{"string", `"up"`, []Reason{NotObject}, false},
	{"null", "null", []Reason{NotObject}, false},
	{"pulse", `{"session":"x","n":12,"elapsed_us":1000123}`,
		[]Reason{UnknownField, UnknownField, UnknownField, MissingField, MissingField, MissingField, MissingField}, false},

	{"empty object", "{}", []Reason{MissingField, MissingField, MissingField, MissingField}, false},
	{"unknown field", with("wieght", "3"), []Reason{UnknownField}, false},
	{"wrong case", with("Zone", `"a"`), []Reason{UnknownField}, false},
	{"unknown field of load", with("load", `{"qps":3}`), []Reason{UnknownField}, false},
	{"unknown field of resources", with("resources", `{"gpu":{"a":[1,true,null]}}`), []Reason{UnknownField}, false},
	{"field twice", strings.TrimSuffix(with(), "}") + `,"port":8081}`, []Reason{DuplicateField}, true},
	{"field of load twice", with("load", `{"rps":1,"rps":1}`), []Reason{DuplicateField}, true},
	{"key of meta twice", with("meta", `{"a":"1","\u0061":"2"}`), []Reason{DuplicateField}, true},
	{"null field", with("zone", "null"), []Reason{BadType}, false},
	{"port as string", with("port", `"8080"`), []Reason{BadType}, false},
	{"port with fraction", with("port", "8080.5"), []Reason{BadType}, false},
	{"port with exponent", with("port", "8e3"), []Reason{BadType}, true},
	{"service as number", with("service", "7"), []Reason{BadType}, false},
	{"tags as string", with("tags", `"a,b"`), []Reason{BadType}, false},
	{"tag as number", with("tags", `["a",1]`), []Reason{BadType}, false},
	{"meta of number", with("meta", `{"a":1}`), []Reason{BadType}, false},
	{"meta as array", with("meta", `[]`), []Reason{BadType}, false},
	{"load as number", with("load", `0.5`), []Reason{BadType}, false},
	{"rps as string", with("load", `{"rps":"5"}`), []Reason{BadType}, false},
	{"memory as float", with("resources", `{"memory":1.5}`), []Reason{BadType}, false},
	{"interval as bool", with("interval", `true`), []Reason{BadType}, false},
	{"sent_at as number", with("sent_at", "1764000000"), []Reason{BadType}, false},

	{"no service", with("service", ""), []Reason{MissingField}, false},
	{"no id", with("id", ""), []Reason{MissingField}, false},
	{"no ip", with("ip", ""), []Reason{MissingField}, false},
	{"no port", with("port", ""), []Reason{MissingField}, false},
	{"draining without address", with("ip", "", "port", "", "status", `"draining"`), []Reason{MissingField, MissingField}, false},
	{"leaving with half an address", with("port", "", "status", `"leaving"`), []Reason{MissingField}, false},
	{"incarnation without seq", with("incarnation", "5"), []Reason{MissingField}, false},
	{"seq without incarnation", with("seq", "5"), []Reason{MissingField}, false},

	{"empty service", with("service", `""`), []Reason{BadService}, false},
	{"service in capitals", with("service", `"Orders"`), []Reason{BadService}, false},
	{"service like a pulse", with("service", `"~pulse"`), []Reason{BadService}, false},
	{"service begins with a dot", with("service", `".orders"`), []Reason{BadService}, false},
	{"service ends with a dash", with("service", `"orders-"`), []Reason{BadService}, false},
	{"service with slash", with("service", `"a/b"`), []Reason{BadService}, false},
	{"service too long", with("service", `"`+repeat("a", 65)+`"`), []Reason{BadService}, false},
	{"id with space", with("id", `"a 7"`), []Reason{BadID}, false},
	{"id with slash", with("id", `"a/7"`), []Reason{BadID}, false},
	{"id too long", with("id", `"`+repeat("a", 65)+`"`), []Reason{BadID}, false},
	{"incarnation 0", with("incarnation", "0", "seq", "1"), []Reason{BadIncarnation}, false},
	{"incarnation negative", with("incarnation", "-1", "seq", "1"), []Reason{BadIncarnation}, false},
	{"incarnation beyond exact numbers", with("incarnation", "9007199254740992", "seq", "1"), []Reason{BadIncarnation}, false},
	{"incarnation beyond int64", with("incarnation", "99999999999999999999999", "seq", "1"), []Reason{BadIncarnation}, false},
	{"seq 0", with("incarnation", "5", "seq", "0"), []Reason{BadSeq}, false},
	{"sent_at no time", with("sent_at", `"yesterday"`), []Reason{BadSentAt}, true},
	{"sent_at without zone", with("sent_at", `"2026-11-29T12:00:00"`), []Reason{BadSentAt}, true},
	{"sent_at too old", with("sent_at", `"0001-01-01T00:00:00Z"`), []Reason{BadSentAt}, true},
	{"scheme ftp", with("scheme", `"ftp"`), []Reason{BadScheme}, false},
	{"scheme empty", with("scheme", `""`), []Reason{BadScheme}, false},
	{"ip a name", with("ip", `"localhost"`), []Reason{BadIP}, false},
	{"ip with port", with("ip", `"10.0.0.7:80"`), []Reason{BadIP}, true},
	{"ip unspecified", with("ip", `"0.0.0.0"`), []Reason{BadIP}, true},
	{"ip6 unspecified", with("ip", `"[::]"`), []Reason{BadIP}, true},
	{"ip multicast", with("ip", `"224.0.0.1"`), []Reason{BadIP}, true},
	{"ip6 multicast", with("ip", `"ff02::1"`), []Reason{BadIP}, true},
	{"ip broadcast", with("ip", `"255.255.255.255"`), []Reason{BadIP}, true},
	{"ip broadcast mapped", with("ip", `"::ffff:255.255.255.255"`), []Reason{BadIP}, true},
	{"ip of this network", with("ip", `"0.0.0.1"`), []Reason{BadIP}, true},
	{"ip of this network, its last", with("ip", `"0.255.255.255"`), []Reason{BadIP}, true},
	{"ip reserved", with("ip", `"240.0.0.4"`), []Reason{BadIP}, true},
	{"ip reserved, mapped", with("ip", `"::ffff:240.0.0.4"`), []Reason{BadIP}, true},
	{"ip of a metadata service", with("ip", `"169.254.169.254"`), []Reason{BadIP}, true},
	{"ip of a metadata service, mapped", with("ip", `"[::ffff:a9fe:a9fe]"`), []Reason{BadIP}, true},
	{"ip6 link-local, its last", with("ip", `"febf::1"`), []Reason{BadIP}, true},
	{"ip6 with zone", with("ip", `"fe80::1%eth0"`), []Reason{BadIP}, false},
	{"ip6 link-local", with("ip", `"fe80::1"`), []Reason{BadIP}, true},
	{"ip with leading zero", with("ip", `"010.0.0.7"`), []Reason{BadIP}, true},
	{"ip4 in brackets", with("ip", `"[10.0.0.7]"`), []Reason{BadIP}, true},
	{"half a bracket", with("ip", `"[::1"`), []Reason{BadIP}, false},
	{"ip in two brackets", with("ip", `"[[::1]]"`), []Reason{BadIP}, false},
	{"port 0", with("port", "0"), []Reason{BadPort}, false},
	{"port 65536", with("port", "65536"), []Reason{BadPort}, false},
	{"port beyond int32", with("port", "4294975376"), []Reason{BadPort}, false},
	{"port negative", with("port", "-80"), []Reason{BadPort}, false},
	{"url without slash", with("url", `"orders"`), []Reason{BadURL}, false},
	{"url absolute", with("url", `"http://x/"`), []Reason{BadURL}, false},
	{"url with query", with("url", `"/a?b"`), []Reason{BadURL}, false},
	{"url with fragment", with("url", `"/a#b"`), []Reason{BadURL}, false},
	{"url encoded", with("url", `"/a%20b"`), []Reason{BadURL}, false},
	{"url climbing", with("url", `"/a/../b"`), []Reason{BadURL}, false},
	{"url climbing at the end", with("url", `"/a/.."`), []Reason{BadURL}, false},
	{"url with dot", with("url", `"/./a"`), []Reason{BadURL}, false},
	{"url with empty segment", with("url", `"/a//b"`), []Reason{BadURL}, false},
	{"url of two slashes", with("url", `"//"`), []Reason{BadURL}, false},
	{"url with line break", with("url", `"/a\nb"`), []Reason{BadURL}, false},
	{"url with space", with("url", `"/a b"`), []Reason{BadURL}, false},
	{"url with no-break space", with("url", "\"/a\u00a0b\""), []Reason{BadURL}, true},
	{"url with backslash", with("url", `"/a\\b"`), []Reason{BadURL}, false},
	{"url too long", with("url", `"/`+repeat("a", 255)+`"`), []Reason{BadURL}, false},
	{"status dead", with("status", `"dead"`), []Reason{BadStatus}, false},
	{"status in capitals", with("status", `"UP"`), []Reason{BadStatus}, false},
	{"weight 0", with("weight", "0"), []Reason{BadWeight}, false},
	{"weight 65536", with("weight", "65536"), []Reason{BadWeight}, false},
	{"max_conns negative", with("max_conns", "-1"), []Reason{BadMaxConns}, false},
	{"max_conns too many", with("max_conns", "1000001"), []Reason{BadMaxConns}, false},
	{"max_fails negative", with("max_fails", "-1"), []Reason{BadMaxFails}, false},
	{"fail_timeout 0", with("fail_timeout", `"0s"`), []Reason{BadFailTimeout}, true},
	{"fail_timeout of half a second", with("fail_timeout", "0.5"), []Reason{BadFailTimeout}, true},
	{"fail_timeout not whole", with("fail_timeout", `"1500ms"`), []Reason{BadFailTimeout}, true},
	{"fail_timeout in days", with("fail_timeout", `"1d"`), []Reason{BadFailTimeout}, false},
	{"fail_timeout negative", with("fail_timeout", `"-5s"`), []Reason{BadFailTimeout}, false},
	{"slow_start too long", with("slow_start", `"2h"`), []Reason{BadSlowStart}, true},
	{"slow_start in µs", with("slow_start", `"1µs"`), []Reason{BadSlowStart}, true},
	{"zone with blank", with("zone", `"a b"`), []Reason{BadZone}, false},
	{"zone with at", with("zone", `"a@b"`), []Reason{BadZone}, false},
	{"zone too long", with("zone", `"`+repeat("a", 65)+`"`), []Reason{BadZone}, false},
	{"version with quote", with("version", `"1\"2"`), []Reason{BadVersion}, false},
	{"tag empty", with("tags", `[""]`), []Reason{BadTags}, false},
	{"tag with comma", with("tags", `["a,b"]`), []Reason{BadTags}, false},
	{"two bad tags", with("tags", `["a b","c","`+repeat("d", 65)+`"]`), []Reason{BadTags, BadTags}, false},
	{"33 tags", with("tags", "["+entries(33, "", `"t#"`)+"]"), []Reason{BadTags}, false},
	{"33 equal tags", with("tags", "["+entries(33, "", `"t"`)+"]"), []Reason{BadTags}, false},
	{"33 entries of meta", with("meta", "{"+entries(33, "k", `"v#"`)+"}"), []Reason{BadMeta}, false},
	{"key of meta empty", with("meta", `{"":"a"}`), []Reason{BadMeta}, false},
	{"key of meta with blank", with("meta", `{"a b":"a"}`), []Reason{BadMeta}, false},
	{"meta with line break", with("meta", `{"a":"x\ny"}`), []Reason{BadMeta}, false},
	{"meta with C1 control", with("meta", `{"a":"\u0085"}`), []Reason{BadMeta}, false},
	{"meta value too long", with("meta", `{"a":"`+repeat("x", 1025)+`"}`), []Reason{BadMeta}, false},
	{"meta too large", with("meta", "{"+entries(9, "k", `"`+repeat("x", 1000)+`"`)+"}"), []Reason{BadMeta}, true},
	{"in_flight negative", with("load", `{"in_flight":-1}`), []Reason{BadLoad}, false},
	{"rps infinite", with("load", `{"rps":1e999}`), []Reason{BadLoad}, true},
	{"latency negative", with("load", `{"latency_ms":-0.1}`), []Reason{BadLoad}, false},
	{"cpu negative", with("resources", `{"cpu":-1}`), []Reason{BadResources}, false},
	{"memory too much", with("resources", `{"memory":9007199254740992}`), []Reason{BadResources}, false},
	{"interval 0", with("interval", `0`), []Reason{BadInterval}, true},
	{"interval below 100 ms", with("interval", `"99ms"`), []Reason{BadInterval}, true},
	{"interval above 5 min", with("interval", `301`), []Reason{BadInterval}, true},
	{"interval no duration", with("interval", `"soon"`), []Reason{BadInterval}, false},
	{"interval too long for its stale limit", with("interval", `"4m"`), []Reason{BadInterval}, true},
	{"interval beyond time", with("interval", `1e300`), []Reason{BadInterval}, true},
	{"stale_after too short", with("stale_after", `"500ms"`), []Reason{BadStaleAfter}, true},
	{"stale_after too long", with("stale_after", `"61m"`), []Reason{BadStaleAfter}, true},
	{"stale_after below 1.5 intervals", with("interval", `"10s"`, "stale_after", `"14s"`), []Reason{BadStaleAfter}, true},
	{"everything at once", with("service", `"A"`, "port", `0`, "weight", `"1"`, "x", "[1]", "zone", `"a b"`, "url", `"a"`),
		[]Reason{BadType, UnknownField, BadService, BadPort, BadURL, BadZone}, false},
}

func ptr[T any](v T) *T { return &v }

// full is a canonical beat with every field set.
func full() Beat {
	return Beat{
		Service: "orders", ID: "a7", Incarnation: 1764000000000, Seq: 12,
		SentAt: time.Date(2026, 11, 29, 12, 0, 0, 500_000_000, time.UTC),
		Scheme: "https", IP: "2001:db8::7", Port: 8443, URL: "/orders/", Status: StatusDraining,
		Weight: 5, MaxConns: 100, MaxFails: ptr(0), FailTimeout: Duration(20 * time.Second), SlowStart: Duration(1500 * time.Millisecond),
		Zone: "eu-1a", Version: "1.2.3+git~5", Tags: []string{"canary", "team=a"}, Meta: map[string]string{"commit": "äöü <&> \"x\""},
		Load:      &Load{InFlight: 3, RPS: 85.5, LatencyMS: 12.25},
		Resources: &Resources{CPU: 0.42, Memory: 123456789},
		Interval:  Duration(5 * time.Second), StaleAfter: Duration(time.Minute),
	}
}

var goodRecords = []struct {
	name   string
	record string
	want   Beat
}{
	{"the least", with(), Beat{Service: "orders", ID: "a7", Scheme: "http", IP: "10.0.0.7", Port: 8080, Status: StatusUp,
		Weight: 1, Interval: Duration(DefaultInterval)}},
	{"all fields", `{"service":"orders","id":"a7","incarnation":1764000000000,"seq":12,"sent_at":"2026-11-29T13:00:00.5+01:00",
		"scheme":"https","ip":"[2001:DB8:0::7]","port":8443,"url":"/orders/","status":"draining","weight":5,"max_conns":100,
		"max_fails":0,"fail_timeout":"20s","slow_start":1.5,"zone":"eu-1a","version":"1.2.3+git~5",
		"tags":["team=a","canary","canary"],"meta":{"commit":"\u00e4öü <&> \"x\""},
		"load":{"in_flight":3,"rps":85.5,"latency_ms":12.25},"resources":{"cpu":0.42,"memory":123456789},
		"interval":"5s","stale_after":"1m"}`, full()},
	{"a goodbye", `{"service":"orders","id":"a7","status":"leaving"}`,
		Beat{Service: "orders", ID: "a7", Status: StatusLeaving, Weight: 1, Interval: Duration(DefaultInterval)}},
	{"a goodbye with address", with("status", `"leaving"`), Beat{Service: "orders", ID: "a7", Scheme: "http", IP: "10.0.0.7",
		Port: 8080, Status: StatusLeaving, Weight: 1, Interval: Duration(DefaultInterval)}},
	{"empty means absent", with("url", `""`, "zone", `""`, "version", `""`, "tags", "[]", "meta", "{}", "load", "{}", "resources", `{"cpu":-0.0}`),
		Beat{Service: "orders", ID: "a7", Scheme: "http", IP: "10.0.0.7", Port: 8080, Status: StatusUp, Weight: 1,
			Interval: Duration(DefaultInterval)}},
	{"4in6 and blanks", " { \"service\" :\t\"o\" ,\r\n\"id\":\"1\",\"ip\":\"::ffff:10.0.0.7\" , \"port\" : 1 } \n",
		Beat{Service: "o", ID: "1", Scheme: "http", IP: "10.0.0.7", Port: 1, Status: StatusUp, Weight: 1, Interval: Duration(DefaultInterval)}},
	{"escapes", with("url", `"\/caf\u00e9\/"`, "meta", `{"a":"\"\\ \ud83d\ude00"}`),
		Beat{Service: "orders", ID: "a7", Scheme: "http", IP: "10.0.0.7", Port: 8080, Status: StatusUp, Weight: 1, URL: "/café/",
			Meta: map[string]string{"a": "\"\\ 😀"}, Interval: Duration(DefaultInterval)}},
	{"the limits", with("service", `"`+repeat("a", 64)+`"`, "id", `"`+repeat("Z", 64)+`"`, "port", "65535", "weight", "65535",
		"max_conns", "1000000", "interval", "100", "stale_after", `"150s"`, "tags", "["+entries(32, "", `"t"`)+"]",
		"meta", `{"k":"`+repeat("x", 1024)+`"}`, "incarnation", "9007199254740991", "seq", "1"),
		Beat{Service: repeat("a", 64), ID: repeat("Z", 64), Scheme: "http", IP: "10.0.0.7", Port: 65535, Status: StatusUp,
			Weight: 65535, MaxConns: 1000000, Tags: []string{"t"}, Meta: map[string]string{"k": repeat("x", 1024)},
			Incarnation: MaxSerial, Seq: 1, Interval: Duration(100 * time.Second), StaleAfter: Duration(150 * time.Second)}},
}
