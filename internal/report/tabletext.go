package report

// Text writes one table alone, of long ones the first rows.
func (t *Table) Text(o TextOptions) string {
	if o.Width <= 0 {
		o.Width = 110
	}
	p := &printer{TextOptions: o}
	p.table(t)
	return p.finish()
}
