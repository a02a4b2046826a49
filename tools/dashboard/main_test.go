// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

func TestTheDashboardIsUpToDate(t *testing.T) {
	want, err := renderDashboard()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../" + dashboardFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says: run go run ./tools/dashboard (%v)", dashboardFile, err)
	}
}

// Panels do not overlap, fit the grid and have unique IDs.
func TestPanelsHaveTheirPlaces(t *testing.T) {
	data, err := renderDashboard()
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > gridWidth {
			t.Errorf("%s: id %d, %+v", p.Title, p.ID, p.GridPos)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[cell]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[cell] = p.Title
			}
		}
	}
}
