// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/sleep"
)

// How often a batch is sent, at most, and how long the pauses between are. It goes to the
// collector alone: no request to Azure or Kubernetes is repeated for it.
const (
	mostTries    = 3
	longestPause = 5 * time.Second
)

var pauses = backoff.Doubling{First: time.Second, Max: longestPause}

// mostQuoted bounds what is read of an answer.
const mostQuoted = 4 << 10

// client sends batches of spans by OTLP over HTTP, as binary protobuf. The one of OpenTelemetry
// brings gRPC along, which the linker then keeps half of Azure's SDK for.
type client struct {
	http   *http.Client
	url    string
	header http.Header
	gzip   bool
}

// Start implements otlptrace.Client.
func (*client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire it is the same as an ExportTraceServiceRequest, which means gRPC in Go.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("spans as protobuf: %w", err)
	}
	if c.gzip {
		if body, err = zipped(body); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		again, err := c.send(ctx, body)
		if err == nil || again < 0 || try == mostTries {
			return err
		}
		if sleep.For(ctx, max(again, pauses.After(try))) != nil {
			return err
		}
	}
}

// send sends a batch once. After an error, again is how long to wait at least before the next
// try, and negative if there is to be none.
func (c *client) send(ctx context.Context, body []byte) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header = c.header.Clone()
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, mostQuoted))
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("%s: %s", resp.Status, said)
	now := time.Now()
	at, named := backoff.RetryAfter(resp.Header, now)
	if !slices.Contains(passing, resp.StatusCode) || at.Sub(now) > longestPause {
		return -1, err
	}
	if !named {
		at = now
	}
	return at.Sub(now), err
}

// passing are the statuses with which a batch may be sent again, by the specification.
var passing = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

func zipped(body []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return b.Bytes(), nil
}
