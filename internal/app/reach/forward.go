// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	protocol "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// mostSaid is how much is read of why a port cannot be reached.
const mostSaid = 500

// forward connects to a port of a pod, whose portforward is at an address of the API server's. The client of
// client-go listens on a port of this machine, where others could ask, too, and its dialer takes no ctx.
func forward(ctx context.Context, api *rest.Config, at *url.URL, port string) (net.Conn, error) {
	transport, made, err := websocket.RoundTripperFor(api)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, made, req, protocol.WebsocketsSPDYTunnelingPortForwardV1)
	if failed, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok {
		return nil, failed.Cause // it does not unwrap
	}
	if err != nil {
		return nil, err
	}
	tunnel := portforward.NewTunnelingConnection("leader", socket)
	streams, err := spdy.NewClientConnection(tunnel)
	if err != nil {
		return nil, errors.Join(err, tunnel.Close())
	}
	conn := &forwarded{Conn: tunnel, streams: streams}
	defer context.AfterFunc(ctx, func() { _ = streams.Close() })() // streams are made without ctx
	if err := conn.open(port); err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	return conn, nil
}

// forwarded is a connection to a port of a pod; the API server carries it.
type forwarded struct {
	net.Conn // the tunnel

	streams httpstream.Connection
	data    httpstream.Stream
	said    httpstream.Stream // why there is no data
	begun   bool
}

func (f *forwarded) open(port string) (err error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	if f.said, err = f.streams.CreateStream(headers); err != nil {
		return err
	}
	if err := f.said.Close(); err != nil { // nothing is written to it
		return err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	f.data, err = f.streams.CreateStream(headers)
	return err
}

// Read reads what the pod says. If that is nothing, it returns why.
func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.data.Read(p)
	if n == 0 && !f.begun && errors.Is(err, io.EOF) {
		if why, _ := io.ReadAll(io.LimitReader(f.said, mostSaid)); len(why) > 0 { // part of it is better than nothing
			return 0, &refusedError{string(why)}
		}
	}
	f.begun = f.begun || n > 0
	return n, err
}

func (f *forwarded) Write(p []byte) (int, error) { return f.data.Write(p) }

// Close ends the streams and the tunnel.
func (f *forwarded) Close() error { return f.streams.Close() }

// refusedError is what a node says of a port of a pod that it cannot reach.
type refusedError struct{ why string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the leader's pod does not answer there: %s; does its --operator-bind-address have another port, or is it 0?", e.why)
}
