// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Dimensions in pixels.
const (
	chartLeft, chartRight = 230, 860
	chartRowHeight        = 44
)

// renderChart draws median to p99 on a logarithmic scale of seconds.
func renderChart(rows []ReportRow) string {
	var b strings.Builder
	height := 50 + chartRowHeight*len(rows)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="900" height="%d" font-family="sans-serif" font-size="12">`+"\n", height+20)
	fmt.Fprintf(&b, `<rect width="900" height="%d" fill="white"/>`+"\n", height+20)
	for _, s := range []float64{1, 3, 10, 30, 100, 300, 1000, 3000} {
		x := chartX(s)
		fmt.Fprintf(&b, `<line x1="%.0f" y1="30" x2="%.0f" y2="%d" stroke="#ddd"/><text x="%.0f" y="%d" text-anchor="middle" fill="#555">%.0f s</text>`+"\n", x, x, height-12, x, height+4, s)
	}
	for i, name := range []string{"Weir", "clairvoyant", "tick of 30 s"} {
		fmt.Fprintf(&b, `<rect x="%d" y="8" width="12" height="8" fill="%s"/><text x="%d" y="16">%s</text>`+"\n", chartLeft+130*i, chartColors[i], chartLeft+130*i+18, name)
	}
	for i, r := range rows {
		y := 38 + chartRowHeight*i
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLeft-10, y+18, r.Trace)
		for n, f := range []Stats{r.Weir, r.Found.Best, r.Baseline} {
			b.WriteString(renderRange(y+11*n, f.P50, f.P99, chartColors[n]))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

var chartColors = []string{"#2563eb", "#16a34a", "#9ca3af"}

func renderRange(y int, median, p99 time.Duration, colour string) string {
	from, to := chartX(median.Seconds()), chartX(max(p99, median).Seconds())
	return fmt.Sprintf(`<rect x="%.1f" y="%d" width="%.1f" height="8" fill="%s" fill-opacity="0.45"/><rect x="%.1f" y="%d" width="3" height="8" fill="%s"/>`+"\n",
		from, y, max(to-from, 3), colour, from, y, colour)
}

func chartX(seconds float64) float64 {
	return chartLeft + (chartRight-chartLeft)*math.Log10(max(seconds, 1))/math.Log10(4000)
}
