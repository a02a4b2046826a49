// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/lb"
)

// ask has send read one resource.
func ask[T any](ctx context.Context, c *Client, t target, send func(context.Context, *sdk.Clients) (T, error)) (T, error) {
	var none T
	this := &call{op: opGet, target: t}
	clients, err := c.of(t.id.SubscriptionID)
	if err != nil {
		return none, classify(ctx, this, err)
	}
	resp, err := send(withCall(ctx, this), clients)
	if err != nil {
		return none, classify(ctx, this, err)
	}
	return resp, nil
}

// list reads all resources of a type in a resource group, page by page. An answer that is
// no list, or holds what does not belong in it, is refused as a whole: what is missing
// from a list will be taken for not there.
func list[P, A, T any](ctx context.Context, c *Client, all target,
	pages func(*sdk.Clients) *runtime.Pager[P], items func(P) []*A, decode func(*A) (T, error),
) ([]T, error) {
	if err := checkID(lb.LoadBalancerID{SubscriptionID: all.id.SubscriptionID, ResourceGroup: all.id.ResourceGroup, Name: "any"}); err != nil {
		return nil, err
	}
	this := &call{op: opList, target: all}
	clients, err := c.of(all.id.SubscriptionID)
	if err != nil {
		return nil, classify(ctx, this, err)
	}
	var found []T
	for pager := pages(clients); pager.More(); {
		var answer *http.Response
		page, err := pager.NextPage(policy.WithCaptureResponse(withCall(ctx, this), &answer))
		if err != nil {
			return nil, classify(ctx, this, err)
		}
		shown := items(page)
		if shown == nil && !codec.NullList(answer) || slices.Contains(shown, nil) {
			return nil, notThat(all)
		}
		for _, item := range shown {
			one, err := decode(item)
			if err != nil {
				return nil, err
			}
			found = append(found, one)
		}
	}
	return found, nil
}

// listed returns the id of what a list shows, spelled as the list was asked for: what
// belongs elsewhere is not what then is looked for.
func listed(all target, shown *string) (lb.ResourceID, error) {
	id, err := lb.ParseResourceID(codec.Value(shown), all.id.Type)
	if err != nil {
		return lb.ResourceID{}, notThat(all)
	}
	id.SubscriptionID, id.ResourceGroup = all.id.SubscriptionID, all.id.ResourceGroup
	return id, nil
}
