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

	"weir.dev/weir/internal/ratelimit"
)

// Limits of sending a batch to the collector. Requests to Azure or Kubernetes are never repeated for it.
const (
	maxAttempts   = 3
	maxRetryDelay = 5 * time.Second
)

var retryDelays = ratelimit.Exponential{Initial: time.Second, Max: maxRetryDelay}

const maxResponseBytes = 4 << 10

// otlpClient exports spans by OTLP over HTTP as binary protobuf. OpenTelemetry's own client depends on gRPC,
// which defeats dead-code elimination in Azure's SDK.
type otlpClient struct {
	http   *http.Client
	url    string
	header http.Header
	gzip   bool
}

// Start implements otlptrace.Client.
func (*otlpClient) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *otlpClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *otlpClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// Same wire format as ExportTraceServiceRequest, which would require gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("spans as protobuf: %w", err)
	}
	if c.gzip {
		if body, err = gzipBody(body); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		retryAfter, err := c.sendOnce(ctx, body)
		if err == nil || retryAfter < 0 || try == maxAttempts {
			return err
		}
		if ratelimit.Sleep(ctx, max(retryAfter, retryDelays.DelayAfter(try))) != nil {
			return err
		}
	}
}

// sendOnce sends a batch once. With an error, retryAfter is the minimum wait before a retry; negative means no retry.
func (c *otlpClient) sendOnce(ctx context.Context, body []byte) (retryAfter time.Duration, err error) {
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
	message, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("%s: %s", resp.Status, message)
	now := time.Now()
	at, named := ratelimit.RetryAfter(resp.Header, now)
	if !slices.Contains(retryableStatuses, resp.StatusCode) || at.Sub(now) > maxRetryDelay {
		return -1, err
	}
	if !named {
		at = now
	}
	return at.Sub(now), err
}

// retryableStatuses are the retryable statuses of the OTLP specification.
var retryableStatuses = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

func gzipBody(body []byte) ([]byte, error) {
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
