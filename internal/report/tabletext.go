package report

// Text writes one table alone, every row of it.
func (t *Table) Text(o TextOptions) string {
	if o.Width <= 0 {
		o.Width = 110
	}
	p := &printer{TextOptions: o}
	p.table(t)
	return p.finish()
}
