// SPDX-License-Identifier: Apache-2.0

package cli

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

const maxErrorBytes = 500

// forwardPort connects to a port of a pod through its portforward subresource. Unlike client-go's forwarder it
// opens no local port, which other users could connect to, and takes a context.
func forwardPort(ctx context.Context, api *rest.Config, at *url.URL, port string) (net.Conn, error) {
	transport, holder, err := websocket.RoundTripperFor(api)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, holder, req, protocol.WebsocketsSPDYTunnelingPortForwardV1)
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
	conn := &forwardedConn{Conn: tunnel, streams: streams}
	defer context.AfterFunc(ctx, func() { _ = streams.Close() })() // CreateStream takes no context
	if err := conn.openStreams(port); err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	return conn, nil
}

// forwardedConn is a connection to a port of a pod through the API server.
type forwardedConn struct {
	net.Conn

	streams     httpstream.Connection
	data        httpstream.Stream
	errorStream httpstream.Stream // error stream
	hasData     bool
}

func (f *forwardedConn) openStreams(port string) (err error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	if f.errorStream, err = f.streams.CreateStream(headers); err != nil {
		return err
	}
	if err := f.errorStream.Close(); err != nil { // nothing is written to it
		return err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	f.data, err = f.streams.CreateStream(headers)
	return err
}

// Read reads from the pod. If the stream ends without data, it returns the error from the error stream.
func (f *forwardedConn) Read(p []byte) (int, error) {
	n, err := f.data.Read(p)
	if n == 0 && !f.hasData && errors.Is(err, io.EOF) {
		if reason, _ := io.ReadAll(io.LimitReader(f.errorStream, maxErrorBytes)); len(reason) > 0 { // a partial message is good enough
			return 0, &portError{string(reason)}
		}
	}
	f.hasData = f.hasData || n > 0
	return n, err
}

func (f *forwardedConn) Write(p []byte) (int, error) { return f.data.Write(p) }

func (f *forwardedConn) Close() error { return f.streams.Close() }

// portError is returned when the pod does not listen on the port.
type portError struct{ message string }

func (e *portError) Error() string {
	return fmt.Sprintf("the leader's pod does not respond there: %s; check the port of its --operator-bind-address (0 disables it)", e.message)
}
