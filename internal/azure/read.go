// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"weir.dev/weir/internal/azure/apiversion"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

type documents struct {
	plain          *arm.Client
	withoutIfMatch bool
	newer          apiversion.Memory
}

func (d *documents) get(ctx context.Context, t target) (codec.Document, error) {
	return d.read(ctx, t, d.version(t))
}

func (d *documents) read(ctx context.Context, t target, version string) (codec.Document, error) {
	c := &call{op: opGet, target: t}
	text, err := d.fetch(withCall(ctx, c), t, version)
	if err != nil {
		return codec.Document{}, classify(ctx, c, err)
	}
	return document(t, codec.Document{Version: version, Text: text})
}

func (d *documents) fetch(ctx context.Context, t target, version string) (text json.RawMessage, err error) {
	resp, err := d.send(ctx, http.MethodGet, t.resource(), version, nil) //nolint:bodyclose // the pipeline has read the body to its end
	if err == nil {
		err = runtime.UnmarshalAsJSON(resp, &text)
	}
	return text, err
}

// isThere does not copy the value.
type isThere bool

// UnmarshalJSON implements json.Unmarshaler.
func (p *isThere) UnmarshalJSON(text []byte) error {
	*p = string(text) != "null"
	return nil
}

type shownResource struct {
	ID         *string `json:"id"`
	Name       *string `json:"name"`
	Properties isThere `json:"properties"`
}

// document rejects a response about another resource: treated as an empty one, it would cause data
// loss.
func document(t target, doc codec.Document) (codec.Document, error) {
	var header shownResource
	if json.Unmarshal(doc.Text, &header) != nil || !bool(header.Properties) || !shows(t.resource(), header.ID, header.Name) {
		return codec.Document{}, notThat(t)
	}
	return compact(doc), nil
}

func compact(doc codec.Document) codec.Document {
	var text bytes.Buffer
	text.Grow(len(doc.Text))
	if json.Compact(&text, doc.Text) == nil {
		doc.Text = bytes.Clone(text.Bytes())
	}
	return doc
}

func decode[I, T any](t target, id I, doc codec.Document, convert func(I, codec.Document) (T, error)) (T, error) {
	value, err := convert(id, doc)
	if err != nil {
		var none T
		return none, notThat(t)
	}
	return value, nil
}

// list rejects a list with an unexpected item, because missing items would be treated as deleted.
func (d *documents) list(ctx context.Context, all target) ([]codec.Document, error) {
	type page struct {
		Value []*json.RawMessage `json:"value"`
		Next  string             `json:"nextLink"`
	}
	if err := checkID(lb.LoadBalancerID{SubscriptionID: all.id.SubscriptionID, ResourceGroup: all.id.ResourceGroup, Name: "any"}); err != nil {
		return nil, err
	}
	version := d.version(all)
	c := &call{op: opList, target: all}
	var found []codec.Document
	for pager := runtime.NewPager(runtime.PagingHandler[page]{
		More: func(p page) bool { return p.Next != "" },
		Fetcher: func(ctx context.Context, last *page) (p page, err error) {
			at := all.resource()
			if last != nil {
				at = last.Next
			}
			resp, err := d.send(ctx, http.MethodGet, at, version, nil) //nolint:bodyclose // the pipeline has read the body to its end
			if err != nil {
				return p, err
			}
			return p, runtime.UnmarshalAsJSON(resp, &p)
		},
	}); pager.More(); {
		var answer *http.Response
		page, err := pager.NextPage(policy.WithCaptureResponse(withCall(ctx, c), &answer))
		if err != nil {
			return nil, classify(ctx, c, err)
		}
		if page.Value == nil && !codec.NullList(answer) || slices.Contains(page.Value, nil) {
			return nil, notThat(all)
		}
		for _, item := range page.Value {
			var header shownResource
			if json.Unmarshal(*item, &header) != nil || header.ID == nil || !strings.EqualFold(path.Dir(*header.ID), all.resource()) {
				return nil, notThat(all)
			}
			found = append(found, compact(codec.Document{Version: version, Text: *item}))
		}
	}
	return found, nil
}

// listed spells IDs like the arguments.
func listed[T any](ctx context.Context, c *Client, kind, subscription, resourceGroup string, convert func(lb.ResourceID, codec.Document) (T, error)) ([]T, error) {
	all := ofAll(kind, subscription, resourceGroup)
	docs, err := c.list(ctx, all)
	if err != nil {
		return nil, err
	}
	var found []T
	for _, item := range docs {
		var header shownResource
		if err := json.Unmarshal(item.Text, &header); err != nil || !bool(header.Properties) {
			return nil, notThat(all)
		}
		id, err := lb.ParseResourceID(*header.ID, kind)
		if err != nil {
			return nil, notThat(all)
		}
		id.SubscriptionID, id.ResourceGroup = subscription, resourceGroup
		one, err := decode(all, id, item, convert)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}
