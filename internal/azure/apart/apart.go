// SPDX-License-Identifier: Apache-2.0

// Package apart takes the pools of load balancers out of an answer before the SDK decodes it, which
// takes several times as long and as much memory as package codec.
package apart

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"weir.dev/weir/internal/azure/codec"
)

// Pools are those of one call: of several answers the last counts, which is what the SDK decodes.
type Pools struct{ codec.Apart }

type key struct{}

// Within has the pools of what is answered taken out.
func (p *Pools) Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// TakeOut takes the pools out of an answer, if somebody gives them back.
func TakeOut(ctx context.Context, resp *http.Response, body []byte) {
	p, _ := ctx.Value(key{}).(*Pools)
	if p == nil {
		return
	}
	rest, pools := codec.SplitPools(body)
	if p.Apart = pools; len(pools) > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(rest))
	}
}
