// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// floodConnections per port, each with an endless request with floodHeaders bytes of tiny
	// headers.
	floodConnections = 60
	floodHeaders     = 1 << 20
	floodDuration    = 15 * time.Second // then the connection rate recovers
)

func (r *run) startFlood(ctx context.Context) error {
	var headers strings.Builder
	headers.WriteString("GET / HTTP/1.1\r\nHost: x\r\n")
	for i := 0; headers.Len() < floodHeaders; i++ {
		headers.WriteString(strconv.FormatInt(int64(i), 36) + ":\r\n")
	}
	ctx, end := context.WithTimeout(ctx, floodDuration)
	context.AfterFunc(ctx, end)
	for i := range 2 * floodConnections {
		go func() {
			for ctx.Err() == nil {
				sendUnfinished(ctx, []string{r.lab.health, r.lab.metrics}[i%2], headers.String())
			}
		}()
	}
	return nil
}

func sendUnfinished(ctx context.Context, address, request string) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		_ = sleepContext(ctx, 20*time.Millisecond)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := io.WriteString(c, request); err == nil {
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}
