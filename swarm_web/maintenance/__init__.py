"""Times in which the operator works on the site: nodes are away, no round opens, pages say so."""
