// A broker that is not Apache's: franz-go's kfake, in memory, for tests of `--cluster existing`.
//
// It prints its bootstrap servers on one line and ends when its standard input closes, so it never outlives its test.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	brokers := flag.Int("brokers", 3, "how many brokers")
	host := flag.String("host", "127.0.0.1", "the address to listen on, such as ::1")
	version := flag.String("as-version", "", "offer only the requests of this Kafka version, such as 2.4")
	flag.Parse()

	options := []kfake.Opt{
		kfake.NumBrokers(*brokers),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return net.Listen(network, net.JoinHostPort(*host, port))
		}),
	}
	if *version != "" {
		versions := kversion.FromString(*version)
		if versions == nil {
			fail(fmt.Errorf("-as-version %s: unknown version", *version))
		}
		options = append(options, kfake.MaxVersions(versions))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		fail(err)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
