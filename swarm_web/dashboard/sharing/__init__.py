"""What stands on other people's pages: badges, preview cards and the feed of closed rounds.

It is told in English, whoever asks: a badge or a card is cached and shown to many.
"""
