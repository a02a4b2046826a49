// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"weir.dev/weir/internal/azure/codec"
)

// apart are the pools of an answer that shows load balancers: they are taken out of the text before
// the SDK decodes it, which takes several times as long and as much memory.
type apart struct{ codec.Apart }

type apartKey struct{}

// within has the pools of what is answered taken out; of several answers the last counts, which is
// what the SDK decodes.
func (a *apart) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, apartKey{}, a)
}

// takeApart takes the pools out of an answer, if somebody gives them back.
func takeApart(ctx context.Context, resp *http.Response, body []byte) {
	a, _ := ctx.Value(apartKey{}).(*apart)
	if a == nil {
		return
	}
	rest, pools := codec.SplitPools(body)
	if a.Apart = pools; len(pools) > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(rest))
	}
}
