// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/gateway-api/conformance/echo-basic/tcpserver"
	"sigs.k8s.io/gateway-api/conformance/echo-basic/udpechoserver"

	"weir.dev/weir/lab/dataplane"
)

// The ports of the suite's image if TCP_PORT and UDP_PORT are not set.
const (
	tcpPort = 3000
	udpPort = 8080
)

// serverOf returns what the containers of a pod of the suite do: the echo servers of echo-basic, and CoreDNS. Other pods
// are backends of HTTP and TLS tests, which do not run.
func serverOf(pod *corev1.Pod) dataplane.Server {
	container := pod.Spec.Containers[0]
	variables := map[string]string{}
	for _, e := range container.Env {
		variables[e.Name] = e.Value
	}
	switch {
	case variables["TCP_ECHO_SERVER"] != "":
		return dataplane.Server{TCP: func(_ context.Context, port uint16, conn net.Conn) {
			if port == tcpPort {
				answerTCP(conn, tcpserver.Context{
					Namespace: pod.Namespace, Service: variables["SERVICE_NAME"], Pod: pod.Name, TCPPort: strconv.Itoa(tcpPort),
				})
			}
		}}
	case variables["UDP_ECHO_SERVER"] != "":
		return dataplane.Server{UDP: func(port uint16, datagram []byte, reply func([]byte)) {
			if port == udpPort {
				answerUDP(datagram, udpechoserver.Context{
					Namespace: pod.Namespace, Service: variables["SERVICE_NAME"], Pod: pod.Name,
				}, reply)
			}
		}}
	case strings.Contains(container.Image, "/coredns:"):
		return dataplane.Server{UDP: func(_ uint16, datagram []byte, reply func([]byte)) { answerDNS(datagram, reply) }}
	}
	return dataplane.Server{}
}

// answerTCP answers the lines of a connection without TLS.
func answerTCP(conn net.Conn, pod tcpserver.Context) {
	answer, err := json.Marshal(tcpserver.TCPAssertions{Context: pod})
	if err != nil {
		return
	}
	fmt.Fprint(conn, tcpserver.WelcomeMessage)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch lines.Text() {
		case "TEST":
			fmt.Fprintf(conn, "%s\n", answer)
		case "IS_TLS":
			fmt.Fprintln(conn, "false")
		case "PING":
			fmt.Fprintln(conn, "PONG")
		}
	}
}

func answerUDP(datagram []byte, pod udpechoserver.Context, reply func([]byte)) {
	answer, err := json.Marshal(udpechoserver.EchoResponse{Request: string(datagram), Context: pod})
	if err == nil {
		reply(answer)
	}
}

// answerDNS confirms that a name exists.
func answerDNS(datagram []byte, reply func([]byte)) {
	question := new(dns.Msg)
	if question.Unpack(datagram) != nil {
		return
	}
	answer, err := new(dns.Msg).SetReply(question).Pack()
	if err == nil {
		reply(answer)
	}
}
