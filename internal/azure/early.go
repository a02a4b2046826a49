// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"time"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// earlyReader reads a written resource before its operation is polled.
type earlyReader struct {
	readResult func(context.Context) (json.RawMessage, bool)
	// onFirstPoll receives whether the write had finished at the first poll.
	onFirstPoll func(over bool)
}

// readUntil reads until the first poll is due. A failed read is ignored.
func (e *earlyReader) readUntil(ctx context.Context, follow *call, poll time.Time) (result json.RawMessage, over bool) {
	if e == nil || e.readResult == nil {
		return result, false
	}
	ctx, cancel := context.WithDeadline(ctx, poll)
	defer cancel()
	follow.op = opResult
	defer func() { follow.op = opPoll }()
	start := time.Now()
	for _, after := range readDelays {
		at := start.Add(after)
		if over || !at.Before(poll) || at.Before(time.Now()) || ratelimit.Sleep(ctx, time.Until(at)) != nil {
			break
		}
		result, over = e.readResult(ctx)
		follow.recordPoll(over, time.Now())
	}
	return result, over
}

// newEarlyReader returns no early reads if the previous write of the load balancer was slow, or if the
// response has no etag.
func newEarlyReader[I, T any](c *Client, a acceptedWrite, id I, convert func(I, codec.Document) (T, error), over func(accepted string, doc T) bool) *earlyReader {
	loadBalancer, _ := a.call.loadBalancer()
	l := &earlyReader{onFirstPoll: func(over bool) { c.slowWrites.RecordPoll(loadBalancer, over) }}
	accepted := a.etag
	if accepted == "" || c.slowWrites.IsSlow(loadBalancer) {
		return l
	}
	l.readResult = func(ctx context.Context) (json.RawMessage, bool) {
		text, err := c.fetchText(ctx, a.call.target, a.version)
		if err != nil {
			return nil, false
		}
		doc, err := checkResource(a.call.target, codec.Document{Version: a.version, Text: text})
		if err != nil {
			return nil, false
		}
		value, err := convert(id, doc)
		return text, err == nil && over(accepted, value)
	}
	return l
}

func (c *Client) newPoolReader(written lb.Pool, a acceptedWrite) *earlyReader {
	return newEarlyReader(c, a, written.ID, codec.DecodePool, func(accepted string, observed lb.Pool) bool { return isPoolFinished(written, accepted, observed) })
}

func (c *Client) newLoadBalancerReader(written lb.LoadBalancer, a acceptedWrite) *earlyReader {
	return newEarlyReader(c, a, written.ID, codec.DecodeLoadBalancer, func(accepted string, observed lb.LoadBalancer) bool {
		return isLoadBalancerFinished(written, accepted, observed)
	})
}
